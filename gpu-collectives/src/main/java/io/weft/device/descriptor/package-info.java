/**
 * Descriptors of files, and of what the driver gives out as such, from process to process of one
 * host: by a Unix socket, and only between processes of one user.
 *
 * <p>Nobody waits for anybody: what was sent lies in the receiver's socket before the receiver is
 * told to look, which is up to the callers. Needs JNA and Linux; nothing of either is touched
 * before an inbox is opened.
 */
package io.weft.device.descriptor;
