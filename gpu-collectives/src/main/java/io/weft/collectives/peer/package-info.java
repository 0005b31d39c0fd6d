/**
 * GPU memory that all ranks of one host access, and exchanges in which each rank writes straight
 * into the memory of the others. A rank writes rows to one peer after the other, or by multicast
 * one block to all at once. An exchange is a barrier, the writes and a barrier, all run by the
 * devices. If a rank does not reach the first barrier, it is named and nothing is written.
 *
 * <p>Everything here is confined to the thread of its communicator, which owns the streams. A
 * window keeps its memory until no rank can write to it any more. Nothing is loaded before a window
 * is opened.
 */
package io.weft.collectives.peer;
