/**
 * What executes: devices, the lanes that order their work, the events that say how far it came, and
 * the probe that says what a machine can do and why not.
 *
 * <p>A {@code HostLane} owns one daemon thread; whoever opened the lane closes it. Events belong to
 * their producer until they end, and every event ends: completed, failed, or dropped by its
 * producer, which fails it.
 */
package io.weft.device;
