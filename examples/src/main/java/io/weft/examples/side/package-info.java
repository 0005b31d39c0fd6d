/**
 * Runs the sides of a comparison: Spark applications with one configuration each, in their own
 * processes. Start at {@code SideLauncher}, which starts a side; {@code SideProcess} is its handle
 * and sends {@code SideTask}s over the standard streams; {@code SideMain} is the other end.
 *
 * <p>A JVM can have only one SparkContext. Sides must alternate within seconds, or the drift of the
 * machine affects only one of them. So each side stays up and idles between its turns. A side ends
 * when its standard input ends, so no side survives its parent.
 *
 * <p>Threads: for each side, this process has one reader thread ({@code weft-side-<name>}), and the
 * side has one task thread. {@code WorkFolder} owns and deletes folders.
 */
package io.weft.examples.side;
