# SPDX-License-Identifier: Apache-2.0
"""Integer programs, which HiGHS solves if it is installed."""

from collections.abc import Mapping
import dataclasses
import importlib
import importlib.util
import math
from typing import Any

# Rounding errors of the solver are smaller.
_TOLERANCE = 1e-6


def is_available() -> bool:
    """Return whether the solver is installed."""
    return importlib.util.find_spec('highspy') is not None


@dataclasses.dataclass(frozen=True)
class Solution:
    """The best solution that was found in time.

    :param values: The values of the variables; None if there is no solution,
        or none was found.
    :param least: What the objective of no solution can be below; infinite if
        there is no solution.
    """

    values: tuple[int, ...] | None
    least: float


class Program:
    """An integer program that minimizes a sum."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._most: list[int] = []
        self._rows: list[tuple[float, float, Mapping[int, int]]] = []

    def variable(self, most: int, cost: float = 0) -> int:
        """Add a variable between 0 and a number; return its position."""
        self._costs.append(cost)
        self._most.append(most)
        return len(self._costs) - 1

    def at_most(self, factors: Mapping[int, int], limit: int) -> None:
        """Limit a weighted sum of variables."""
        self._rows.append((-math.inf, limit, factors))

    def exactly(self, factors: Mapping[int, int], value: int) -> None:
        """Fix a weighted sum of variables."""
        self._rows.append((value, value, factors))

    def solve(self, seconds: float) -> Solution:
        """Return the best solution that is found within a time."""
        highspy: Any = importlib.import_module('highspy')

        class Solver(highspy.Highs):  # type: ignore[misc]
            def enableCallbacks(self) -> None:  # noqa: N802
                # Called while it is constructed; it would print its licence.
                self.setOptionValue('output_flag', False)
                super().enableCallbacks()

        solver: Any = Solver()
        solver.setOptionValue('time_limit', float(seconds))
        # The same input has the same solution.
        solver.setOptionValue('threads', 1)
        solver.setOptionValue('mip_rel_gap', 0.0)
        solver.passModel(self._model(highspy))
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Solution(None, math.inf)
        info = solver.getInfo()
        least = info.mip_dual_bound
        feasible = highspy.SolutionStatus.kSolutionStatusFeasible
        if info.primal_solution_status != feasible:
            return Solution(None, least)
        return Solution(
            tuple(round(value) for value in solver.getSolution().col_value),
            least,
        )

    def _model(self, highspy: Any) -> Any:
        np: Any = importlib.import_module('numpy')
        program = highspy.HighsLp()
        program.num_col_ = len(self._costs)
        program.num_row_ = len(self._rows)
        program.col_cost_ = np.array(self._costs)
        program.col_lower_ = np.zeros(len(self._costs))
        program.col_upper_ = np.array(self._most, dtype=float)
        program.row_lower_ = np.array([row[0] for row in self._rows])
        program.row_upper_ = np.array([row[1] for row in self._rows])
        integer = highspy.HighsVarType.kInteger
        program.integrality_ = [integer] * len(self._costs)
        by_row = highspy.MatrixFormat.kRowwise
        program.a_matrix_.format_ = by_row
        starts = np.cumsum([0, *(len(row[2]) for row in self._rows)])
        program.a_matrix_.start_ = starts
        program.a_matrix_.index_ = np.array(
            [column for row in self._rows for column in row[2]], dtype=int
        )
        program.a_matrix_.value_ = np.array(
            [float(f) for row in self._rows for f in row[2].values()]
        )
        return program


def rounded_up(value: float) -> int:
    """Return the least integer that is not below a bound of the solver."""
    return math.ceil(value - _TOLERANCE)
