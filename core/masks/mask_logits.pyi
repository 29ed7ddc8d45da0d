import numpy as np
import numpy.typing as npt

COMPILED: bool

def forbid(
    logits: npt.NDArray[np.uint32] | npt.NDArray[np.uint16],
    masks: npt.NDArray[np.uint32],
    rows: npt.NDArray[np.int32],
    pattern: int,
) -> None: ...
