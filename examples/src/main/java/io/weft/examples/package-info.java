/**
 * The command line {@code weft}: demo, benchmarks, training, traces and doctor. Start at {@code
 * Weft}. This package only parses; each command has its own package. All code runs on the main
 * thread, except for the threads that package {@code side} describes. A command frees the folders
 * and processes that it creates; a shutdown hook does so when the command is interrupted.
 */
package io.weft.examples;
