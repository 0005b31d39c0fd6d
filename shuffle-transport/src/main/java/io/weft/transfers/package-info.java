/**
 * Transfers of arrays from a device of one executor to a device of another. Start with {@link
 * io.weft.transfers.DeviceTransfers}, which sends, receives and places arrays; with {@link
 * io.weft.transfers.ReceivedBuffer}, an array that arrives; and with {@link
 * io.weft.transfers.DeferredTransfer}, the transfer of a placement.
 *
 * <p>A transfer is prepared on the caller's thread and joins the batch of its device. The launcher
 * thread "weft-transfer-launch-…" hands a batch to its cliques when the batch is large or old
 * enough, or when a thread waits for one of its transfers. A clique is a pair of devices with its
 * own lane, a thread of the highest priority. The lane works in rounds: both ends exchange
 * manifests with their offers and confirm them, and the matched transfers move as one group over a
 * {@code TransferWire}. A transfer whose key, type or size differs fails at both ends.
 *
 * <p>Arrays with a codec are encoded chunk by chunk on threads "weft-transfer-code-…", while the
 * lane moves the previous chunks. {@code DeviceTransfers} owns the launchers, channels and receive
 * buffers, and closes them.
 */
package io.weft.transfers;
