/**
 * How ranks find each other without Spark: as threads of one process, through a folder they share,
 * or through a socket of rank 0; rounds in which a rank that failed still takes part; and what all
 * ranks load before they start.
 *
 * <p>Each bootstrap serves one thread and is closed by whoever opened it.
 */
package io.weft.collectives.bootstrap;
