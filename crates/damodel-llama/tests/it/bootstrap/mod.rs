//! The program that runs in an instance, run by real shells in homes of their own: real processes, real compiles, real
//! sockets. The server, the GPU and its compiler are the sandbox's stand-ins. What the provider makes of the reports is
//! tested beside its functions.

mod boxes;
mod compile;
mod disk;
mod download;
mod home;
mod life;
mod process;
mod questions;
mod real;
mod replace;
mod reports;
mod restart;
mod secrets;
mod stand_in;
mod stop;
mod survive;
mod update;
