/**
 * Cross-host transfers: buffers sent from a device of one executor to a device of another.
 *
 * <p>A transfer is prepared on the caller's thread and joins the batch of its device. When the
 * batch leaves (large enough, old enough, or a waiter needs it), the device's launcher thread
 * "weft-transfer-launch-…" hands its transfers to their cliques, in the order of first appearance.
 * Every clique is a pair of devices and has a lane of its own, a thread of the highest priority. It
 * works in rounds: both ends tell each other in a manifest what they offer, and what both agree on
 * moves as one group. So a transfer whose key, type or size is not what the other end expects fails
 * on both ends, and one end never sends what the other does not take.
 *
 * <p>Arrays with a codec are encoded chunk by chunk, on threads "weft-transfer-code-…", while the
 * lane moves the chunks before; at the other end they are decoded in the same way.
 *
 * <p>A {@link io.weft.crosshost.PreparedTransfer} owns its event and its use of the buffer; whoever
 * drops it fails the event, and the use ends when the lane no longer touches the memory. The
 * launchers, channels and transfer buffers belong to {@link io.weft.crosshost.CrossHostTransfers},
 * which ends them all.
 */
package io.weft.crosshost;
