"""Arrays lent to a compiled loop: numba counts references of arrays it inlines over, here it does not."""

from typing import Any

from numba.extending import intrinsic, overload


def lent(array: Any) -> Any:
    """Return an argument of a compiled loop without a count of its references.

    Functions inlined into the loop would count them up and down for every person, at about half of the loop's time.
    Only for arguments: their caller holds them until the loop has ended. An array made inside would be freed at once.
    """
    return array


@intrinsic
def _uncounted(typing: Any, array: Any) -> Any:  # noqa: ARG001 - numba's signature
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        return view._getvalue()

    return array(array), build


@overload(lent)
def _lent(array: Any) -> Any:  # noqa: ARG001 - numba's signature
    def uncounted(array: Any) -> Any:
        return _uncounted(array)  # type: ignore[call-arg]

    return uncounted
