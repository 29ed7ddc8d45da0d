import numpy as np
import numpy.typing as npt

COMPILED: bool

def forbid32(
    logits: npt.NDArray[np.uint32], masks: npt.NDArray[np.uint32], rows: npt.NDArray[np.int32], pattern: int
) -> None: ...
def forbid16(
    logits: npt.NDArray[np.uint16], masks: npt.NDArray[np.uint32], rows: npt.NDArray[np.int32], pattern: int
) -> None: ...
