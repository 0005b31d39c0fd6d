/**
 * What this machine can do, and where it cannot, why: asked once, kept as an immutable record, and
 * used by everything that chooses a path.
 *
 * <p>The probe only reads files and file names. It loads no native library and calls no driver,
 * since a driver that is broken can end or hang the JVM; so it works, and says why not, on machines
 * without a GPU. Stateless.
 */
package io.weft.device.probe;
