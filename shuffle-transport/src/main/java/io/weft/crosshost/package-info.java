/**
 * Transfers of arrays from a device of one executor to a device of another.
 *
 * <p>A transfer is prepared on the caller's thread and joins the batch of its device. A batch is
 * launched when it is large or old enough, or when a thread waits for one of its transfers: the
 * launcher thread "weft-transfer-launch-…" hands its transfers to their cliques. A clique is a pair
 * of devices with a lane of its own, a thread of the highest priority. The lane works in rounds:
 * both ends exchange manifests with their offers, and the matched transfers move as one group. A
 * transfer whose key, type or size differs fails at both ends, and an end never sends data that the
 * other does not expect.
 *
 * <p>Arrays with a codec are encoded chunk by chunk on threads "weft-transfer-code-…", while the
 * lane moves the previous chunks. The other end decodes them in the same way.
 *
 * <p>A {@link io.weft.crosshost.PreparedTransfer} owns its event and its use of the buffer.
 * Cancelling it fails the event; the use ends when the lane no longer touches the memory. {@link
 * io.weft.crosshost.CrossHostTransfers} owns the launchers, channels and transfer buffers, and
 * closes them.
 */
package io.weft.crosshost;
