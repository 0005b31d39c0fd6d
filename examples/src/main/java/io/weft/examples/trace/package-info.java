/**
 * The commands {@code weft trace} and {@code weft replay}: recordings of executors become one trace
 * file, and the pattern of a trace runs again on this machine.
 *
 * <p>Start with {@code TraceCommand} and {@code ReplayCommand}. All classes are for one thread
 * unless they say otherwise. Commands own the files and processes that they create.
 */
package io.weft.examples.trace;
