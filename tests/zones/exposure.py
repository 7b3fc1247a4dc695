"""What other users of the machine, and other machines, can reach of a tree of processes.

Listening sockets come from the kernel's tables, by the inodes that the processes hold, and files
from a walk over the directories that the processes may write to, with the mode bits of every directory above.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from bench.processes import family

_LISTENS = "0A"
_UNIX_ACCEPTS = 1 << 16
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Listening:
    """A TCP socket that accepts connections, or a UDP socket."""

    process: int
    address: Address
    port: int

    @property
    def is_local(self) -> bool:
        mapped = self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else None
        return (mapped or self.address).is_loopback


def listening(process: int) -> list[Listening]:
    """The network sockets of a process and all that it started which others can send to."""
    holders = _holders(process)
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            inode = int(words[9])
            if inode in holders and (words[3] == _LISTENS or table.startswith("udp")):
                address, _, port = words[1].partition(":")
                found.append(Listening(holders[inode], _address(address), int(port, 16)))
    return found


def unix_listening(process: int) -> list[Path]:
    """The paths of the unix sockets of a process and all that it started."""
    holders = _holders(process)
    found = []
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if int(words[6]) in holders and int(words[3], 16) & _UNIX_ACCEPTS and len(words) > 7:
            found.append(Path(words[7]))
    return found


def _holders(process: int) -> dict[int, int]:
    """The processes by the inodes of the sockets that they hold."""
    found = {}
    for one in family(process):
        for link in _links(Path(f"/proc/{one}/fd")):
            if link.startswith("socket:["):
                found[int(link[8:-1])] = one
    return found


def open_files(process: int) -> list[Path]:
    """The files that a process and all that it started have open."""
    links = [link for one in family(process) for link in _links(Path(f"/proc/{one}/fd"))]
    return [Path(link) for link in dict.fromkeys(links) if link.startswith("/")]


def _links(folder: Path) -> Iterator[str]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            yield str(entry.readlink())
        except OSError:
            continue


def _address(text: str) -> Address:
    """As in /proc/net: 32-bit words in the byte order of this machine."""
    words = bytes.fromhex(text)
    return ip_address(b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4)))


def files(*folders: Path) -> list[Path]:
    """All that is below some directories."""
    return [Path(at) / name for folder in folders for at, below, here in os.walk(folder) for name in (*below, *here)]


def readable_by_others(path: Path) -> bool:
    """Whether another user may read a file or list a directory."""
    return _allows(path, _OTHERS_READ)


def writable_by_others(path: Path) -> bool:
    """Whether another user may write to a file, connect to a socket, or create files in a directory."""
    return _allows(path, _OTHERS_WRITE)


def _allows(path: Path, bits: int) -> bool:
    try:
        return bool(path.lstat().st_mode & bits) and all(
            parent.stat().st_mode & _OTHERS_ENTER for parent in path.parents
        )
    except FileNotFoundError:
        return False  # it is gone


def containing(value: str, *folders: Path) -> list[Path]:
    """The files below some directories that contain a value. Another process reads them: a process that has a
    store open and closes one of its files loses LMDB's locks."""
    command = ["grep", "-rlaF", "-D", "skip", value, *map(str, folders)]
    return [Path(line) for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]


def command_lines(process: int) -> list[bytes]:
    """What ``ps`` shows of a process and all that it started."""
    found = []
    for one in family(process):
        try:
            found.append(Path(f"/proc/{one}/cmdline").read_bytes())
        except OSError:
            continue
    return found


def answer(port: int, sent: bytes) -> bytes:
    """What a port of this machine answers to some bytes; nothing where it closes the connection or is silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(sent)
        connection.settimeout(2)
        try:
            return connection.recv(100)
        except OSError:
            return b""
