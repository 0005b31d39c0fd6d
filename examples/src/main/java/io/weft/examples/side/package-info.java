/**
 * A side of a comparison: a Spark application with one configuration, in its own process. A JVM can
 * have only one SparkContext. Sides must alternate within seconds, or the drift of the machine
 * affects only one of them. So each side stays up and idles between its turns. {@code SideProcess}
 * is the handle of a side: it sends {@code SideTask}s over the standard streams and waits for
 * results. {@code SideMain} is the other end. A side ends when its standard input ends, so no side
 * survives its parent.
 *
 * <p>Threads: for each side, this process has one reader thread ({@code weft-side-<name>}), and the
 * side has one task thread. {@code WorkFolder} owns and deletes folders.
 */
package io.weft.examples.side;
