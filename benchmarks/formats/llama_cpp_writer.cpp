static std::string the_template;
static void out(const std::string & text) {
    std::cout << '"';
    for (unsigned char c : text) {
        char code[8];
        if (c == '"' || c == '\\' || c < 32) { snprintf(code, sizeof code, "\\u%04x", c); std::cout << code; }
        else { std::cout << c; }
    }
    std::cout << '"';
}
static void test_peg_parser(common_chat_templates *, const std::function<void(peg_test_case &)> & init, bool) {
    peg_test_case tc;
    init(tc);
    std::cout << "{\"template\":"; out(the_template);
    std::cout << ",\"input\":"; out(tc.input);
    std::cout << ",\"partial\":" << tc.is_partial << ",\"thinking\":" << tc.params.enable_thinking
              << ",\"continued\":" << (int) tc.params.continue_final_message << ",\"schema\":";
    out(tc.params.json_schema);
    std::cout << ",\"tools\":[";
    for (size_t i = 0; i < tc.params.tools.size(); i++) {
        std::cout << (i ? ",[" : "["); out(tc.params.tools[i].name);
        std::cout << ","; out(tc.params.tools[i].parameters); std::cout << "]";
    }
    std::cout << "],\"text\":"; out(tc.expect.content);
    std::cout << ",\"reasoning\":"; out(tc.expect.reasoning_content);
    std::cout << ",\"calls\":[";
    for (size_t i = 0; i < tc.expect.tool_calls.size(); i++) {
        const auto & call = tc.expect.tool_calls[i];
        std::cout << (i ? ",[" : "["); out(call.name); std::cout << ","; out(call.arguments); std::cout << "]";
    }
    std::cout << "]}\n";
}
