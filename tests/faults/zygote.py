"""A process that has imported everything already and forks victims on request.

Starting Python and its libraries takes longer than the crash a test wants, so one process
does it once, and every victim is a fork of it that opens the store itself.

The parent asks over a socket, with the victim's reporting pipe attached; a victim that was
killed stays a zombie until the parent has it reaped, so its process id means nobody else. Modules
named on the command line bring roles of their own.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import socket
import sys
import traceback

from tests.faults.victims import ROLES, Reports

STUCK = 40


def serve(requests: socket.socket) -> None:
    """Until the parent is gone; then the victims that are left are killed."""
    children: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, 1)
        if not message:
            for child in children:
                os.kill(child, signal.SIGKILL)
            return
        request = json.loads(message)
        if "reap" in request:
            _, status = os.waitpid(request["reap"], 0)
            children.remove(request["reap"])
            requests.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
            continue
        child = os.fork()
        if child == 0:
            requests.close()
            _live(request, Reports(descriptors[0]))
        os.close(descriptors[0])
        children.add(child)
        requests.send(json.dumps(child).encode())


def _live(request: dict[str, object], reports: Reports) -> None:
    """A victim's whole life; never returns. One that hangs says where."""
    faulthandler.dump_traceback_later(STUCK, repeat=True)
    try:
        ROLES[str(request["role"])](reports, request["arguments"])  # type: ignore[arg-type]
        reports.send("done")
    except BaseException:
        reports.send_long("failed " + traceback.format_exc())
    os._exit(0)


if __name__ == "__main__":
    for module in sys.argv[2:]:
        ROLES |= importlib.import_module(module).ROLES
    serve(socket.socket(fileno=int(sys.argv[1])))
