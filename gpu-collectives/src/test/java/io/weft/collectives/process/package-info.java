/**
 * Ranks that are processes: the same operations as between threads, and ranks that are killed or
 * stopped, which no thread can play.
 */
package io.weft.collectives.process;
