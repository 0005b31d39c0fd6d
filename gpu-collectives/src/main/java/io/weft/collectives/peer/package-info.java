/**
 * Memory of GPUs that all ranks of one host reach, and the exchanges by which each writes straight
 * into that of the others: its rows to one after the other, or by multicast a block to all at once.
 * A barrier, the writes, a barrier, all by the devices. A rank that does not come to a barrier is
 * named, and nothing is written then.
 *
 * <p>Everything here is confined to the thread of its communicator, which owns the streams; a
 * window keeps its memory until no rank can write to it any more. Nothing of it is loaded unless a
 * window is opened.
 */
package io.weft.collectives.peer;
