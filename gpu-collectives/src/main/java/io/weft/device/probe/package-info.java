/**
 * The capabilities of this machine, and the reasons for missing ones. They are probed once and kept
 * as an immutable record, which all code that selects a path uses.
 *
 * <p>Start with {@link io.weft.device.probe.CapabilityProbe}, which returns {@link
 * io.weft.device.probe.Capabilities}.
 *
 * <p>The probe only reads files and file names. It loads no native library and calls no driver,
 * because a broken driver can end or block the JVM. So it also works on machines without a GPU.
 * Stateless.
 */
package io.weft.device.probe;
