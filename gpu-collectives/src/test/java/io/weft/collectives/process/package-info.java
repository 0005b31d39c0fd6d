/**
 * Tests of ranks in separate processes: the same operations as between threads, and ranks that are
 * killed or stopped, which threads cannot simulate.
 */
package io.weft.collectives.process;
