import numpy as np
import numpy.typing as npt

COMPILED: bool
VECTORS: bool
LANES: int

def unpack(
    q: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.float32],
    start: int,
    out: npt.NDArray[np.float32],
) -> None: ...
def multiply_vectorised(
    q: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.float32],
    vectors: npt.NDArray[np.float32],
    sums: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None: ...
