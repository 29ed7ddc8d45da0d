"""Sources of tools: functions, classes, provider dicts and objects, OpenAPI documents."""
