/**
 * A side of a comparison: a Spark application with one configuration, in a process of its own.
 * There can be only one SparkContext in a JVM, and sides have to take turns within seconds or the
 * machine's drift falls on one of them; so each side stays up, idle between its turns. {@code
 * SideProcess} is its handle here: it sends {@code SideTask}s over the standard streams and waits
 * for results; {@code SideMain} is the other end. A side ends when its standard input does, so that
 * none survives its parent.
 *
 * <p>Threads: each process has one reader ({@code weft-side-<name>}) here, and one thread that runs
 * tasks over there. Folders belong to {@code WorkFolder}, which deletes them.
 */
package io.weft.examples.side;
