/** One executor's end of every exchange: the facade over memory, catalog and transfers. */
package io.weft.exchange;
