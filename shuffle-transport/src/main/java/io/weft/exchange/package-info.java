/**
 * One executor's end of every exchange: the facade over memory, catalog and transfers.
 *
 * <p>Thread-safe; one instance per JVM, made by the executor's plugin and closed by it, which frees
 * everything below. Owns the thread weft-upkeep, which frees what others have let go of.
 */
package io.weft.exchange;
