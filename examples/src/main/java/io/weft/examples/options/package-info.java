/**
 * Options that several commands have, as mixins of picocli: each is parsed and explained in one
 * place. For the thread of the command line.
 */
package io.weft.examples.options;
