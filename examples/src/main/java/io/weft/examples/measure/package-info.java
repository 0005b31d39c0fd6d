/**
 * The measuring harness of all benchmarks: alternating rounds, statistics of repeated runs, CPU
 * time, copy speed of this machine, and reports as text, Markdown, JSON and SVG. Start at {@link
 * io.weft.examples.measure.Rounds}, {@link io.weft.examples.measure.Report} and {@link
 * io.weft.examples.measure.MeasureOptions}. Holds no resources.
 */
package io.weft.examples.measure;
