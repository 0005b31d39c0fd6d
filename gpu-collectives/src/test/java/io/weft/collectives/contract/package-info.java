/**
 * The contract of every implementation of communicators, as interfaces of tests: the test class of
 * an implementation provides its factory and inherits them.
 */
package io.weft.collectives.contract;
