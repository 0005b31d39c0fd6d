/**
 * Map outputs on their way from an executor that is about to end to one that lives on: each travels
 * as one stream of bytes and is published at the other end as a whole or not at all.
 *
 * <p>The sender holds the shuffle while a stream of it is open, and who opened the stream closes
 * it. The receiver owns what it allocated until it is published, and frees it when it is closed
 * without. Streams are read and written on the network threads of Spark's block transfer.
 */
package io.weft.migration;
