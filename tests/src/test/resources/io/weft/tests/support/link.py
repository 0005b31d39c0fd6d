"""A switch between the network namespaces of a test. Orders on standard input delay and drop frames
between the second and the third port, or cut off one of the two from all others. The arguments are
the names of the ports. The switch creates them as tap devices of the caller's namespace; the caller
then moves them to other namespaces. The switch prints "made" when they exist, or "not permitted"
and the reason.

Orders: "late MILLISECONDS lose PERCENT", "cut", "cut-off PORT" (1 or 2), "heal". The answer to each
is "done".
"""

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP_WITHOUT_HEAD = 0x0002 | 0x1000
MOST_BYTES = 1 << 16


def tap(name):
    port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(port, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_WITHOUT_HEAD))
    return port


def put(port, frame):
    try:
        os.write(port, frame)
    except OSError:
        pass  # The port has no reader at the moment; a network loses frames.


class Switch:
    def __init__(self, ports):
        self.ports = ports
        self.slow = {ports[1], ports[2]}
        self.where = {}
        self.waiting = []
        self.number = 0
        self.late = 0.0
        self.lose = 0.0
        self.is_cut = False
        self.cut_off = None
        self.random = random.Random(1)

    def obey(self, line):
        words = line.split()
        if words[0] == "late":
            self.late = float(words[1]) / 1000
            self.lose = float(words[3]) / 100
        else:
            self.is_cut = words[0] == "cut"
            self.cut_off = self.ports[int(words[1])] if words[0] == "cut-off" else None
        print("done", flush=True)

    def take(self, port):
        for _ in range(64):
            try:
                frame = os.read(port, MOST_BYTES)
            except OSError:
                return
            self.where[frame[6:12]] = port
            known = self.where.get(frame[0:6])
            for target in [known] if known is not None else self.ports:
                if target != port:
                    self.pass_on(port, target, frame)

    def pass_on(self, port, target, frame):
        if self.cut_off in (port, target):
            return
        if {port, target} != self.slow:
            put(target, frame)
        elif not self.is_cut and self.random.random() >= self.lose:
            self.number += 1
            heapq.heappush(self.waiting, (time.monotonic() + self.late, self.number, target, frame))

    def deliver(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(self.waiting)
            if not self.is_cut and self.cut_off is None:
                put(target, frame)

    def run(self):
        while True:
            pause = max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None
            ready, _, _ = select.select(self.ports + [sys.stdin], [], [], pause)
            for port in self.ports:
                if port in ready:
                    self.take(port)
            self.deliver()
            if sys.stdin in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                self.obey(line)


if __name__ == "__main__":
    try:
        switch = Switch([tap(name) for name in sys.argv[1:4]])
    except PermissionError as refusal:
        print("not permitted:", refusal, flush=True)
        sys.exit(1)
    print("made", flush=True)
    switch.run()
