"""gRPC calls answered by the methods of an object."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import grpc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.kubelet.protobuf import Message, Schema


class CallError(Exception):
    """A call fails, although it is valid."""


class Calls(grpc.GenericRpcHandler):
    """Answers unary calls, of any service.

    Args:
        target: the object.
        schema: the messages.
        table: by a call's name: the method that answers it, which may be a coroutine, and the
            kinds of its request and response. All other calls are answered as unimplemented.
    """

    def __init__(
        self, target: object, schema: Schema, table: Mapping[str, tuple[str, str, str]]
    ) -> None:
        self._target = target
        self._schema = schema
        self._table = table

    def service(self, details: Any) -> Any:
        """The handler of a call; None for calls that aren't implemented."""
        name = details.method.rpartition("/")[2]
        if name not in self._table:
            return None
        method, request, response = self._table[name]
        call = getattr(self._target, method)

        async def answer(message: Message, context: Any) -> Message:
            try:
                made = call(message)
                done: Message = await made if inspect.isawaitable(made) else made
            except LookupError as error:
                await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
                raise
            except CallError as error:
                await context.abort(grpc.StatusCode.UNKNOWN, str(error))
                raise
            return done

        return grpc.unary_unary_rpc_method_handler(
            answer,
            lambda data: self._schema.decode(request, data),
            lambda message: self._schema.encode(response, message),
        )
