/**
 * Libraries of the machine, bound through JNA when something asks for them and never before: a
 * library that is missing, too old or without JNA is one exception with its reason.
 *
 * <p>JNA is an optional dependency. A library that is bound stays bound until the process ends, as
 * its functions are static methods; binding is thread-safe.
 */
package io.weft.device.library;
