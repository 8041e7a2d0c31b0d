"""One file a command: parse, call one library function, hand the value to a renderer."""
