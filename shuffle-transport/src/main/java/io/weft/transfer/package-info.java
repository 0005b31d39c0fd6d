/**
 * Reading blocks: requests, their flow and the chunks they become.
 *
 * <p>A reader belongs to one task thread, the only one that waits; answers reach it from Netty's
 * threads through its queue. Receive extents are the reader's: one is freed when the task is past
 * its chunks, all when the reader is closed and their streams have ended.
 */
package io.weft.transfer;
