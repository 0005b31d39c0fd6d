/**
 * Passes file descriptors, also those of the GPU driver, between processes of one host and one
 * user, through a Unix socket.
 *
 * <p>No call waits: a descriptor is in the receiver's socket before the sender notifies the
 * receiver, which is up to the callers. Needs JNA and Linux; both are used only after an inbox is
 * opened.
 */
package io.weft.device.descriptor;
