"""The constants of the cost model that are right for this machine."""

import sys

TRIES = 5


def calibrate(conn, progress):
    """The recommended constants. On a busy machine this may take more than one try."""
    for _ in range(TRIES):
        result = conn.execute(
            "SELECT write_temp_page_cost, buffer_scan_cost, write_page_us, read_page_us,"
            " process_page_us, gain_page_us, planner_unit_us, write_cv, gain_cv"
            " FROM temp_parallel_calibrate()").fetchone()
        write, scan, write_us, read_us, process_us, gain_us, unit_us, write_cv, gain_cv = result
        progress.say(f"calibrated: a page takes {write_us:.2f} us to write, {read_us:.2f} to read,"
                     f" {process_us:.2f} to process, of which workers gain {gain_us:.2f};"
                     f" a unit of the planner is {unit_us:.2f} us"
                     f" (coefficient of variation: writing {write_cv:.0%}, gain {gain_cv:.0%})")
        if write is not None:
            return write, scan
    sys.exit("the machine is too busy to calibrate")
