/**
 * An executor's access to the shuffle: the facade over memory, catalog and fetching.
 *
 * <p>Thread-safe. The executor's plugin creates one instance per JVM and closes it, which frees all
 * resources. Owns the thread weft-upkeep, which frees memory without readers.
 */
package io.weft.exchange;
