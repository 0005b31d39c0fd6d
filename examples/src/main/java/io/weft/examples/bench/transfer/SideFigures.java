package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Spread;

/**
 * What one side of a row showed.
 *
 * @param side its name
 * @param seconds by run
 * @param cpuSeconds of all its processes, by run
 */
public record SideFigures(String side, Spread seconds, Spread cpuSeconds) {}
