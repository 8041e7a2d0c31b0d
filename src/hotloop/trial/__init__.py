"""One job under one plan in one fresh process: starting it, watching it, reading what it left."""
