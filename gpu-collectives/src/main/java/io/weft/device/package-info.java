/**
 * Execution of work: devices, lanes that order work, and events that report its progress.
 *
 * <p>Start with {@link io.weft.device.Lane}, which runs work in order; its host implementation is
 * {@link io.weft.device.HostLane}. An {@link io.weft.device.Event} reports the end of work, and a
 * {@link io.weft.device.Deadline} limits each wait.
 *
 * <p>A {@code HostLane} owns one daemon thread; the code that opens a lane closes it. An event
 * belongs to its producer until it ends. Every event ends: completed, failed, or closed by its
 * producer, which fails it.
 */
package io.weft.device;
