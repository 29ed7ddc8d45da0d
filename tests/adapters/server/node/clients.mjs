// Clients in JavaScript, whose streams are read otherwise than Python's: each prints what it got as one line of JSON.
import Anthropic from '@anthropic-ai/sdk';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

const [, , base, model, schemaText] = process.argv;
const schema = JSON.parse(schemaText);
const ask = [{ role: 'user', content: 'Two seats to Oslo, please.' }];
const found = {};

async function openai() {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none' });
  const tools = [{ type: 'function', function: { name: 'book', parameters: schema } }];
  const asked = { model, messages: ask, tools, tool_choice: 'required', parallel_tool_calls: false, max_tokens: 200 };
  const whole = await client.chat.completions.create(asked);
  found.chat = whole.choices[0].message.tool_calls.map((call) => JSON.parse(call.function.arguments));
  const runner = client.chat.completions.stream(asked);
  const final = await runner.finalChatCompletion();
  found.chatStream = final.choices[0].message.tool_calls.map((call) => JSON.parse(call.function.arguments));
  const stream = await client.chat.completions.create({ model, messages: ask, max_tokens: 20, stream: true, logprobs: true });
  let text = '', logprobs = 0;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? '';
    logprobs += chunk.choices[0]?.logprobs?.content?.length ?? 0;
  }
  found.chatText = [text.length > 0, logprobs > 0];
  const responded = await client.responses.create({
    model, input: 'Book.', max_output_tokens: 200, tool_choice: 'required', parallel_tool_calls: false,
    tools: [{ type: 'function', name: 'book', parameters: schema, strict: true }],
  });
  found.responses = responded.output.filter((item) => item.type === 'function_call').map((item) => JSON.parse(item.arguments));
  const events = client.responses.stream({
    model, input: 'Book.', max_output_tokens: 200,
    text: { format: { type: 'json_schema', name: 'booking', schema, strict: true } },
  });
  found.responsesStream = [JSON.parse((await events.finalResponse()).output_text)];
  const completion = await client.completions.create({ model, prompt: 'Once', max_tokens: 5 });
  found.completions = completion.choices[0].text.length > 0;
  try {
    await client.chat.completions.create({ model, messages: ask, audio: { format: 'mp3', voice: 'ash' } });
  } catch (error) {
    found.refused = [error.status, error.param];
  }
  const controller = new AbortController();
  const left = await client.chat.completions.create(
    { model, messages: ask, max_tokens: 2000, stream: true }, { signal: controller.signal });
  for await (const _ of left) { controller.abort(); break; }
}

async function anthropic() {
  const client = new Anthropic({ baseURL: base, apiKey: 'none' });
  const asked = {
    model, messages: ask, max_tokens: 200, tools: [{ name: 'book', input_schema: schema }],
    tool_choice: { type: 'tool', name: 'book', disable_parallel_tool_use: true },
  };
  const whole = await client.messages.create(asked);
  found.messages = whole.content.filter((block) => block.type === 'tool_use').map((block) => block.input);
  const final = await client.messages.stream(asked).finalMessage();
  found.messagesStream = final.content.filter((block) => block.type === 'tool_use').map((block) => block.input);
  found.count = (await client.messages.countTokens({ model, messages: ask })).input_tokens > 0;
}

async function ollama() {
  const client = new Ollama({ host: base });
  const tools = [{ type: 'function', function: { name: 'book', parameters: schema } }];
  const asked = { model, messages: ask, tools, tool_choice: 'required', options: { num_predict: 200 } };
  found.ollama = (await client.chat({ ...asked })).message.tool_calls.map((call) => call.function.arguments);
  let parts = '';
  for await (const part of await client.chat({ model, messages: ask, format: schema, stream: true, options: { num_predict: 200 } }))
    parts += part.message.content;
  found.ollamaStream = [JSON.parse(parts)];
  found.ollamaList = (await client.list()).models.map((one) => one.model);
}

async function vercel() {
  const providers = {
    vercelChat: createOpenAI({ baseURL: `${base}/v1`, apiKey: 'none' }).chat(model),
    vercelResponses: createOpenAI({ baseURL: `${base}/v1`, apiKey: 'none' })(model),
    vercelCompatible: createOpenAICompatible({
      name: 'toolgrammar', baseURL: `${base}/v1`, supportsStructuredOutputs: true, // else it sends no schema
    })(model),
    vercelAnthropic: createAnthropic({ baseURL: `${base}/v1`, apiKey: 'none' })(model),
  };
  for (const [name, languageModel] of Object.entries(providers)) {
    const ran = [];
    const book = tool({
      description: 'Book seats.', inputSchema: jsonSchema(schema),
      execute: async (input) => { ran.push(input); return 'booked'; },
    });
    const shared = { model: languageModel, prompt: 'Two seats to Oslo, please.', maxOutputTokens: 200, maxRetries: 0 };
    await generateText({ ...shared, tools: { book }, toolChoice: 'required', stopWhen: stepCountIs(2) });
    const streamed = streamText({
      ...shared, tools: { book }, toolChoice: 'required', stopWhen: stepCountIs(2), onError: ({ error }) => { throw error; } });
    const kinds = new Set();
    for await (const part of streamed.fullStream) kinds.add(part.type);
    found[name] = ran;
    found[`${name}Kinds`] = kinds.has('tool-call') && kinds.has('finish') && !kinds.has('error');
    const object = await generateText({ ...shared, output: Output.object({ schema: jsonSchema(schema) }) });
    found[`${name}Object`] = [object.output];
    const words = streamText({ ...shared, maxOutputTokens: 10, onError: ({ error }) => { throw error; } });
    let text = '';
    for await (const piece of words.textStream) text += piece;
    found[`${name}Text`] = text.length > 0;
  }
}

const all = { openai, anthropic, ollama, vercel };
for (const name of (process.argv[5] ?? 'openai,anthropic,ollama,vercel').split(',')) await all[name]();
console.log(JSON.stringify(found));
