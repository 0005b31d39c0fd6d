/**
 * How ranks find each other without Spark: as threads of one process, through a shared folder, or
 * through a socket of rank 0. Rounds let a rank that failed report its failure to all. A
 * preparation loads code on all ranks before they start.
 *
 * <p>Each bootstrap serves one thread, and the code that opens it closes it.
 */
package io.weft.collectives.bootstrap;
