# mypy: ignore-errors
"""A store on the network, and its client. All its readers together share the line's bandwidth."""

import os
import socket
import struct
import threading
import time
from multiprocessing import get_context

CHUNK = 64 * 1024


def start(objects, bytes_per_second):
    """Serve a list of byte strings from a process of its own; the address to read them at."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = get_context("fork").Process(target=_serve, args=(listener, objects, bytes_per_second))
    server.daemon = True
    server.start()
    address = listener.getsockname()
    listener.close()
    return address


def _serve(listener, objects, bytes_per_second):
    parent, line = os.getppid(), threading.Lock()
    listener.settimeout(1)
    while os.getppid() == parent:
        try:
            reader, _ = listener.accept()
        except TimeoutError:
            continue
        reader.settimeout(None)
        arguments = (reader, objects, bytes_per_second, line)
        threading.Thread(target=_answer, args=arguments, daemon=True).start()


def _answer(reader, objects, bytes_per_second, line):
    while request := reader.recv(4):
        data = objects[struct.unpack("<I", request)[0]]
        with line:
            time.sleep(len(data) / bytes_per_second)
            reader.sendall(struct.pack("<I", len(data)) + data)


class Client:
    def __init__(self, address):
        self.address, self.connection, self.owner = address, None, None

    def get(self, number):
        """The bytes of one object. A process that was forked needs a connection of its own."""
        if self.owner != os.getpid():
            self.connection, self.owner = socket.create_connection(self.address), os.getpid()
        self.connection.sendall(struct.pack("<I", number))
        size = struct.unpack("<I", self._read(4))[0]
        return self._read(size)

    def _read(self, size):
        data = bytearray()
        while len(data) < size:
            data += self.connection.recv(min(CHUNK, size - len(data)))
        return data
