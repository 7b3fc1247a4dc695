"""Calls from Java to this process, made only by a Java process that knows the secret.

Py4J listens on the loopback address for calls of Java, such as those of ``foreachBatch``, and here
it asks for the secret that the two share already.

PySpark starts this server without a secret, so every user of the machine could call the functions that are
registered there, or remove them. Java's end knows the secret too, but forgets it when it is told the port
(``PythonClient.copyWith``): so it is given a client that has both.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext, java_gateway


def require_secret() -> None:
    """Start the server for calls of Java, which asks for the secret, unless there is a server already."""
    gateway: Any = SparkContext._gateway
    secret = gateway.gateway_parameters.auth_token
    if secret is None or gateway.__dict__.get("_callback_server") is not None:
        return
    gateway.callback_server_parameters.auth_token = secret
    java_gateway.ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    _tell_java(gateway, secret)


def _tell_java(gateway: Any, secret: str) -> None:
    java = gateway.jvm
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    unit = java.java.util.concurrent.TimeUnit.SECONDS
    sockets = java.javax.net.SocketFactory.getDefault()
    address = server.getCallbackClient().getAddress()
    port = gateway._callback_server.port
    end = server.getGateway()
    client = java.py4j.PythonClient(end, None, port, address, 1, unit, sockets, server, True, 0, secret)
    field = end.getClass().getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(end, client)
