/**
 * Migrates map outputs from an executor that is decommissioned to another one. Each output is one
 * stream of bytes. The receiver publishes it atomically.
 *
 * <p>The sender holds the shuffle while a stream of it is open. The opener of a stream closes it.
 * The receiver owns its memory until it publishes the output, and frees it if it is closed before.
 * Streams are read and written on the network threads of Spark's block transfer.
 */
package io.weft.migration;
