/**
 * Execution of work: devices, lanes that order work, events that report its progress, and the probe
 * of the machine's capabilities.
 *
 * <p>A {@code HostLane} owns one daemon thread; the code that opens a lane closes it. An event
 * belongs to its producer until it ends. Every event ends: completed, failed, or closed by its
 * producer, which fails it.
 */
package io.weft.device;
