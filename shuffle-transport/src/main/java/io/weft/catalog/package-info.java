/**
 * Which map outputs exist and where their chunks lie: the owner's catalog, the index files it
 * publishes and what a reader on the same host makes of them.
 */
package io.weft.catalog;
