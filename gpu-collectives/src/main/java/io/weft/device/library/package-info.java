/**
 * Libraries of the machine, bound through JNA at first use. A library that is missing, too old or
 * without JNA causes one exception with its reason.
 *
 * <p>JNA is an optional dependency. A bound library stays bound until the process ends, because its
 * functions are static methods. Binding is thread-safe.
 */
package io.weft.device.library;
