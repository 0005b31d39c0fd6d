package io.weft.examples.bench.collectives;

import io.weft.examples.measure.Spread;

/**
 * What one side showed in one case.
 *
 * @param side its name
 * @param seconds of one operation, the slowest rank, by run
 * @param cpuSeconds of one operation, all ranks and threads together, by run
 * @param errors elements that were not as expected
 * @param algorithm which it says it used; empty if it does not
 */
public record SideFigures(
    String side, Spread seconds, Spread cpuSeconds, long errors, String algorithm) {}
