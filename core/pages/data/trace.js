"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  // Texts only ever become text nodes: a token may hold HTML.
  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "style") Object.assign(element.style, value);
      else element.setAttribute(key, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  };
  const share = (value) => value === undefined ? "–"
    : value >= 0.9995 ? "100%" : value >= 0.1 ? `${(value * 100).toFixed(0)}%`
    : value >= 0.001 ? `${(value * 100).toFixed(1)}%` : value > 0 ? "< 0.1%" : "0%";
  const time = (seconds) => seconds >= 1 ? `${seconds.toFixed(2)} s`
    : seconds >= 0.001 ? `${(seconds * 1000).toFixed(1)} ms` : `${(seconds * 1e6).toFixed(0)} µs`;
  const count = (number) => number.toLocaleString("en");
  const shared = (number) => number === undefined ? "" : data.texts[number];
  const seen = (text) => text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ +| +$/g, (run) => "␣".repeat(run.length));
  const visible = (token) => token.control || seen(token.text) || "…";
  // Words with texts between backticks.
  const words = (text) => text.split("`").map((part, number) => number % 2 ? make("code", {}, seen(part)) : part);
  const HOW = {
    sampled: ["chosen by the model", "the model chose it among the allowed tokens"],
    forced: ["the only one allowed", "the mask left this token alone"],
    jumped: ["fixed text", "the grammar fixes this text: the model was not asked"],
    closed: ["by the budget", "the token budget was short: this is the shortest valid end"],
  };
  const ROLE = {
    name: "the name of a member", string: "a string", number: "a number", literal: "true, false or null",
    structure: "brackets", format: "the markup of a call", tool: "the tool's name", text: "text", reasoning: "reasoning",
  };
  let tokens = [], elements = [], current = -1, pinned = false;

  const place = (token) => {
    const pointer = shared(token.pointer);
    const where = token.pointer === undefined ? "" : pointer || "(whole value)";
    return [shared(token.tool), where].filter(Boolean).join(" ") || ROLE[token.role];
  };

  const show = (index, pin) => {
    if (pinned && !pin) return;
    const panel = at("detail");
    if (current >= 0 && elements[current]) elements[current].classList.remove("on");
    current = index;
    pinned = pin || pinned;
    const token = tokens[index];
    elements[index].classList.add("on");
    const rows = [["how", HOW[token.how][1]], ["place", token.pointer === undefined ? place(token) : `${place(token)} (${ROLE[token.role]})`]];
    if (token.instead_of !== undefined) rows.push(["the model wrote", make("code", {}, seen(token.instead_of))]);
    if (token.schema !== undefined) rows.push(["schema", make("code", {}, shared(token.schema))]);
    if (token.allowed !== undefined) {
      const size = trace.vocabulary_size;
      rows.push(["allowed", `${count(token.allowed)} of ${count(size)} tokens`]);
    }
    if (token.expected !== undefined) rows.push(["expected", make("span", {}, words(shared(token.expected)))]);
    if (token.probability !== undefined) rows.push(["probability", share(token.probability)]);
    if (token.removed !== undefined) rows.push(["removed by the mask", share(token.removed)]);
    rows.push(["time", `model ${time(token.model_seconds)}, engine ${time(token.engine_seconds)}`]);
    const close = make("button", { id: "close", type: "button", "aria-label": "Close" }, "✕");
    close.onclick = () => { panel.className = "empty"; document.body.classList.remove("open"); pinned = false; };
    const children = [
      close,
      make("h2", {}, `Token ${index + 1} of ${tokens.length} `, make("span", { class: "token mono" }, visible(token)),
        ` id ${token.token_id}`),
      make("dl", {}, rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    ];
    if (token.forbidden) {
      children.push(make("h2", {}, "What the model also wanted, and why not"));
      children.push(make("table", {}, make("tbody", {}, token.forbidden.map((each) => make("tr", {},
        make("td", {}, make("code", {}, seen(each.text) || "…")),
        make("td", { class: "figure" },
          make("i", { class: "share", style: { width: `${(each.probability * 3).toFixed(2)}rem` } }),
          share(each.probability)),
        make("td", {}, words(each.why)))))));
    } else if (token.removed !== undefined) {
      children.push(make("p", { class: "hint" }, "The model gave no forbidden token 0.1% or more."));
    }
    panel.replaceChildren(...children);
    panel.className = "";
    if (pin) document.body.classList.add("open");
  };

  const move = (index) => {
    if (index < 0 || index >= tokens.length) return;
    pinned = true;
    if (current >= 0) elements[current].tabIndex = -1;
    elements[index].tabIndex = 0;
    elements[index].focus({ preventScroll: true });
    elements[index].scrollIntoView({ block: "nearest" });
    show(index, true);
  };

  const spell = (token) => {
    if (token.control) return [make("span", { class: "sign" }, token.control)];
    if (!token.text) return [make("span", { class: "sign" }, "·")];
    const parts = token.text.split("\n");
    return parts.flatMap((part, number) => number ? [make("span", { class: "sign" }, "↵"), "\n", part] : [part]);
  };

  const bar = (parts) => make("div", { class: "bar", role: "img", "aria-label": parts.map((one) => one[0]).join(", ") },
    parts.filter((one) => one[1] > 0).map(([label, value, colour]) => make("i", {
      title: label, style: { flexGrow: String(value * 1e6), background: colour } })));
  const card = (title, big, strip, small) => make("div", { class: "card" },
    make("h2", {}, title), make("div", { class: "big" }, big), strip, make("div", { class: "small" }, small));

  let trace = null;
  const draw = (number) => {
    trace = data.attempts[number];
    tokens = trace.tokens;
    current = -1;
    pinned = false;
    const count_of = (how) => tokens.filter((token) => token.how === how).length;
    const asked = tokens.filter((token) => token.removed !== undefined);
    const free = Math.exp(asked.reduce((sum, token) => sum + Math.log(Math.max(1e-12, 1 - token.removed)), 0));
    const mean = asked.reduce((sum, token) => sum + token.removed, 0) / Math.max(1, asked.length);
    const sampled = count_of("sampled");
    at("about").textContent = `${trace.model} · vocabulary of ${count(trace.vocabulary_size)} tokens · `
      + `prompt of ${count(trace.prompt_tokens)} tokens`;
    const decoding = Math.max(0, trace.model_seconds - trace.prompt_seconds);
    at("cards").replaceChildren(
      card("Tokens", count(tokens.length), bar([
        [`${sampled} chosen`, sampled, "var(--edge)"],
        [`${tokens.length - sampled} not`, tokens.length - sampled, "var(--line)"],
      ]), `${count(sampled)} chosen by the model, ${count(tokens.length - sampled)} settled by the grammar`
        + (count_of("closed") ? `, ${count(count_of("closed"))} of them by the budget` : "")),
      card("Removed by the mask", share(asked.length ? mean : undefined), bar([
        ["removed", mean, "var(--removed)"], ["kept", 1 - mean, "var(--line)"],
      ]), asked.length ? `of the model's probability, on average over ${count(asked.length)} choices. Sampling freely `
        + `at these places, it would have stayed inside the grammar with a chance of ${share(free)}.`
        : "the model was never asked"),
      card("Time", time(trace.model_seconds + trace.engine_seconds), bar([
        ["prompt", trace.prompt_seconds, "var(--dim)"], ["model", decoding, "var(--edge)"],
        ["engine", trace.engine_seconds, "var(--removed)"],
      ]), `prompt ${time(trace.prompt_seconds)}, model ${time(decoding)}, engine ${time(trace.engine_seconds)}`
        + (tokens.length ? ` (${time(trace.engine_seconds / tokens.length)} a token)` : "")),
    );
    const sign = (classes, words) => make("span", {}, make("span", { class: `t ${classes}` }, "abc"), ` ${words}`);
    at("legend").replaceChildren(
      sign("sampled", "chosen"), sign("forced", "the only one allowed"), sign("jumped", "fixed text"),
      ...(count_of("closed") ? [sign("closed", "by the budget")] : []),
      sign("sampled r1", "mask removed 1%"), sign("sampled r2", "10%"), sign("sampled r3", "50% or more"),
    );
    elements = tokens.map((token, index) => {
      const removed = token.removed || 0;
      const level = removed >= 0.5 ? " r3" : removed >= 0.1 ? " r2" : removed >= 0.01 ? " r1" : "";
      return make("span", { class: `t ${token.how}${level}`, "data-n": index, role: "button", tabindex: index ? -1 : 0 },
        ...spell(token));
    });
    at("tokens").replaceChildren(...elements);
    at("detail").replaceChildren(make("p", { class: "hint" }, "No token is selected."));
    at("detail").className = "empty";
    const most = asked.filter((token) => token.removed >= 0.01).sort((one, other) => other.removed - one.removed);
    at("most").replaceChildren(make("h2", {}, "Where the grammar said no"), most.length
      ? make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {},
          make("th", {}, "token"), make("th", {}, "place"), make("th", { class: "figure" }, "removed"),
          make("th", {}, "the model wanted"))), make("tbody", {}, most.slice(0, 10).map((token) => {
          const button = make("button", { type: "button", class: "mono" }, visible(token));
          button.onclick = () => move(tokens.indexOf(token));
          return make("tr", {}, make("td", {}, button), make("td", {}, place(token)),
            make("td", { class: "figure" }, share(token.removed)),
            make("td", {}, (token.forbidden || []).slice(0, 3).flatMap((each, index) =>
              [index ? ", " : "", make("code", {}, seen(each.text) || "…"), ` ${share(each.probability)}`])));
        }))))
      : make("p", { class: "hint" }, "Nowhere: the mask removed less than 1% at each choice."));
    const groups = new Map();
    for (const token of tokens) {
      const key = place(token);
      const group = groups.get(key) || { tokens: 0, sampled: 0, removed: 0, asked: 0, model: 0, engine: 0, first: token };
      group.tokens += 1;
      group.sampled += token.how === "sampled";
      group.removed += token.removed || 0;
      group.asked += token.removed !== undefined;
      group.model += token.model_seconds;
      group.engine += token.engine_seconds;
      groups.set(key, group);
    }
    const shown = [...groups].slice(0, 200);
    at("places").replaceChildren(make("h2", {}, "By place"), make("div", { class: "scroll" }, make("table", {},
      make("thead", {}, make("tr", {}, make("th", {}, "place"),
        ...["tokens", "chosen", "removed", "model", "engine"].map((word) => make("th", { class: "figure" }, word)))),
      make("tbody", {}, shown.map(([key, group]) => make("tr", {}, make("td", {}, make("code", {}, key)),
        ...[count(group.tokens), count(group.sampled), group.asked ? share(group.removed / group.asked) : "–",
          time(group.model), time(group.engine)].map((text) => make("td", { class: "figure" }, text))))))),
      ...(groups.size > shown.length ? [make("p", { class: "hint" }, `… and ${groups.size - shown.length} places more`)] : []));
    const buttons = at("attempts");
    buttons.hidden = data.attempts.length < 2;
    buttons.replaceChildren(...data.attempts.flatMap((attempt, index) => {
      const button = make("button", { type: "button", "aria-pressed": String(index === number) },
        `Answer ${index + 1}${attempt.problems.length ? ": not valid" : ""}`);
      button.onclick = () => draw(index);
      return [button, " "];
    }), ...trace.problems.map((problem) => make("p", { class: "bad" }, problem)));
  };

  const number_of = (event) => {
    const element = event.target instanceof Element ? event.target.closest(".t[data-n]") : null;
    return element ? Number(element.dataset.n) : -1;
  };
  at("tokens").addEventListener("pointerover", (event) => {
    const index = number_of(event);
    if (index >= 0 && event.pointerType === "mouse") show(index, false);
  });
  at("tokens").addEventListener("click", (event) => {
    const index = number_of(event);
    if (index < 0) return;
    if (pinned && index === current) pinned = false;
    else move(index);
  });
  at("tokens").addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    const from = current < 0 ? number_of(event) : current;
    if (event.key in steps) move(Math.min(tokens.length - 1, Math.max(0, from + steps[event.key])));
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(tokens.length - 1);
    else if (event.key === "Enter" || event.key === " ") move(Math.max(0, number_of(event)));
    else if (event.key === "Escape") pinned = false;
    else return;
    event.preventDefault();
  });
  draw(data.attempts.length - 1);
  at("main").hidden = false;
  const wanted = tokens.reduce((best, token, index) =>
    (token.removed || 0) > ((tokens[best] || {}).removed || 0) ? index : best, -1);
  if (wanted >= 0 && window.matchMedia("(min-width: 900px)").matches) show(wanted, false);
})();
