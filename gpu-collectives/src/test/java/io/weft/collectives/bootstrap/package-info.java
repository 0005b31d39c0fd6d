/** How ranks find each other: every way gives the same rounds and the same errors. */
package io.weft.collectives.bootstrap;
