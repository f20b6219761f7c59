//! The registry: one file per experiment, or per group of figures from the same runs.

mod cosa_fig8;
mod cosa_observations;
mod cosa_speedup;
mod maestro_fig10;
mod maestro_fig11;
mod maestro_fig13;
mod maestro_fig9;
mod maestro_table5;
mod ours_model;
mod ours_speed;
mod ours_streaming;
mod samo_fig2;
mod samo_fig3;
mod samo_fig4;
mod samo_table4;
mod samo_table5;
mod samo_table6;
mod sconv;

use super::experiment::{Experiment, Run};

/// Every claim, in the order in which they are listed and run.
pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "cosa-fig3",
        source: "CoSA (ISCA 2021), Fig. 3",
        claim: "the order of the loops alone changes the latency of a layer by up to 1.7×",
        part: "the simulator on every order of one mapping",
        differs: "the paper judges by its analytical model on mappings of its own; ours are of `greedy`, since what `milp` \
                  finds has hardly an order left to get wrong",
        run: Run::Here(cosa_observations::fig3),
    },
    Experiment {
        id: "cosa-fig4",
        source: "CoSA (ISCA 2021), Fig. 4",
        claim: "the spatial mapping alone changes the latency of a layer by up to 4.3×",
        part: "the simulator on every spatial choice of one mapping",
        differs: "the paper judges by its analytical model on mappings of its own; ours are the best of 40 random ones",
        run: Run::Here(cosa_observations::fig4),
    },
    Experiment {
        id: "cosa-fig6",
        source: "CoSA (ISCA 2021), Fig. 6",
        claim: "one-shot schedules are 5.2× as fast as random search's and 1.5× as fast as Timeloop's hybrid search's",
        part: "schedulers `milp`, `hybrid` and `random:naive`, judged by simulation on simba",
        differs: "the paper's latencies come from an analytical model without stalls, ours from the simulation, in which \
                  bandwidth bounds many layers whoever maps them; each distinct layer counts once",
        run: Run::Here(cosa_speedup::fig6),
    },
    Experiment {
        id: "cosa-fig7",
        source: "CoSA (ISCA 2021), Fig. 7",
        claim: "the gain carries over to four times the PEs (4.4×, 1.1×) and to larger buffers (5.7×, 1.4×)",
        part: "schedulers `milp`, `hybrid` and `random:naive`, judged by simulation on simba_4x and simba_sram",
        differs: "as for Fig. 6; more PEs behind the same memory are bound by its bandwidth",
        run: Run::Here(cosa_speedup::fig7),
    },
    Experiment {
        id: "cosa-fig8",
        source: "CoSA (ISCA 2021), Fig. 8",
        claim: "for one layer of ResNet-50, CoSA has the lowest objective, and it is 7× as fast as random search",
        part: "the cost model `cosa` and schedulers `milp:cosa`, `hybrid` and `random:naive`",
        differs: "random search depends on its draws; the paper shows one",
        run: Run::Here(cosa_fig8::run),
    },
    Experiment {
        id: "cosa-fig9",
        source: "CoSA (ISCA 2021), Fig. 9",
        claim: "CoSA's schedules take 22 % less energy than hybrid search's",
        part: "energy of the simulated counts on simba",
        differs: "energies per access are those of the machine's file; both searches minimise cycles here",
        run: Run::Here(cosa_speedup::fig9),
    },
    Experiment {
        id: "maestro-fig9",
        source: "MAESTRO (MICRO 2019), Fig. 9",
        claim: "the model is within 4.26 % of the Eyeriss chip on AlexNet, on average",
        part: "the Eyeriss chip's layers, simulated and modelled",
        differs: "the mappings are the published or identified ones of the chip",
        run: Run::Here(maestro_fig9::run),
    },
    Experiment {
        id: "maestro-fig10",
        source: "MAESTRO (MICRO 2019), Fig. 10",
        claim: "choosing the dataflow per layer saves 37 % runtime and 10 % energy",
        part: "the cost model `maestro` on the five dataflow styles",
        differs: "networks are described with their padding and without the layers that a style cannot express; the paper \
                  does not say what the saving is relative to, so both are told",
        run: Run::Here(maestro_fig10::run),
    },
    Experiment {
        id: "maestro-fig11",
        source: "MAESTRO (MICRO 2019), Fig. 11",
        claim: "which dataflow reuses most depends on the kind of layer",
        part: "the cost model `maestro`: uses per fetch from the outer buffer, and bandwidth",
        differs: "tile sizes of the styles are those of the published files, at 256 PEs",
        run: Run::Here(maestro_fig11::run),
    },
    Experiment {
        id: "maestro-fig13",
        source: "MAESTRO (MICRO 2019), Fig. 13",
        claim: "designs with the highest throughput have moderate PEs and buffers; 0.17 million designs per second",
        part: "a sweep of the cost model `maestro` with its area and power",
        differs: "buffers are just as large as needed; the paper's rate counts designs that were skipped",
        run: Run::Here(maestro_fig13::run),
    },
    Experiment {
        id: "maestro-table5",
        source: "MAESTRO (MICRO 2019), Table 5",
        claim: "without multicast or reduction in the network the energy is about 47 % higher",
        part: "the simulator on simba with multicast and reduction taken out of every network",
        differs: "the paper has a KC-P machine of its own and energies without networks; here sums without reduction \
                  hardware are read, modified and written at the buffer",
        run: Run::Here(maestro_table5::run),
    },
    Experiment {
        id: "samo-table4",
        source: "SAMO (FPL 2022), Table IV",
        claim: "the spaces are too large to enumerate, at 4 to 75 design points per second",
        part: "`brute`: sizes by dynamic programming, points judged per second",
        differs: "the original judges a design in Python, node by node; here the foldings of all nodes are judged once",
        run: Run::Here(samo_table4::run),
    },
    Experiment {
        id: "samo-fig2",
        source: "SAMO (FPL 2022), Fig. 2",
        claim: "the rule-based search finds good designs with far fewer evaluations than annealing",
        part: "`anneal` and `rule` at equal evaluations, against the proven optimum",
        differs: "budgets count evaluations, not seconds; the rule finds the foldings of all nodes for an interval at once",
        run: Run::Here(samo_fig2::run),
    },
    Experiment {
        id: "samo-fig3",
        source: "SAMO (FPL 2022), Fig. 3",
        claim: "throughput-driven designs take more partitions, whose reconfigurations the batch pays for",
        part: "`exact` for both objectives, simulated with reconfigurations",
        differs: "look-up tables and flip-flops are estimated; the original's coefficients are not free",
        run: Run::Here(samo_fig3::run),
    },
    Experiment {
        id: "samo-fig4",
        source: "SAMO (FPL 2022), Fig. 4",
        claim: "throughput grows with the batch as more partitions pay off",
        part: "`exact` over batch sizes",
        differs: "published values are those of the plotting script in its repository, found by its rule; ours are optimal \
                  under our estimate of look-up tables and flip-flops, and batch is consistent in the bandwidth check",
        run: Run::Here(samo_fig4::run),
    },
    Experiment {
        id: "samo-table5",
        source: "SAMO (FPL 2022), Table V",
        claim: "optimised designs are orders of magnitude faster than unfolded ones, for latency and for throughput",
        part: "`exact` for every network, backend and platform",
        differs: "look-up tables and flip-flops of fpgaConvNet are our estimate; the unfolded design is cut alike",
        run: Run::Here(samo_table5::run),
    },
    Experiment {
        id: "samo-table6",
        source: "SAMO (FPL 2022), Table VI",
        claim: "optimised designs are 4 to 20 times as fast as hand-tuned ones",
        part: "`exact` against the foldings that come with FINN's examples",
        differs: "the foldings are those of FINN's current examples, already at the floor of MobileNetV1's first layer; no \
                  design does better, so the larger factors must be against other foldings",
        run: Run::Here(samo_table6::run),
    },
    Experiment {
        id: "samo-table7",
        source: "SAMO (FPL 2022), Table VII",
        claim: "resources and clock after synthesis",
        part: "synthesis with the vendors' tools",
        differs: "nothing is synthesised here",
        run: Run::Needs("synthesis with Vivado; `cyclonest stream --export` writes what it starts from"),
    },
    Experiment {
        id: "sconv-table2",
        source: "SConv (TACO 2023), Table 2",
        claim: "convolutions are 12 to 46 % faster than im2col with a BLAS library, per model",
        part: "direct convolution on this computer",
        differs: "another processor and a current BLAS library",
        run: Run::Here(sconv::table2),
    },
    Experiment {
        id: "sconv-fig8",
        source: "SConv (TACO 2023), Fig. 8",
        claim: "90 % of the convolutions are faster than im2col with a BLAS library, by up to 2.1×",
        part: "direct convolution on this computer",
        differs: "another processor and a current BLAS library",
        run: Run::Here(sconv::fig8),
    },
    Experiment {
        id: "ours-model",
        source: "ours",
        claim: "the closed-form model agrees with the simulation",
        part: "cost models `exact`, `exact:quick` and `timeloop` against the simulator on three machines",
        differs: "`timeloop` knows no stalls",
        run: Run::Here(ours_model::run),
    },
    Experiment {
        id: "ours-streaming",
        source: "ours",
        claim: "the slowest node predicts a pipeline's throughput for batches, not its latency",
        part: "the pipeline simulation against the model of the streaming backends",
        differs: "the model leaves out the fill",
        run: Run::Here(ours_streaming::run),
    },
    Experiment {
        id: "ours-host",
        source: "ours",
        claim: "the simulator predicts this computer's convolutions",
        part: "direct convolution on this computer against its simulation",
        differs: "other load on the machine",
        run: Run::Here(sconv::host),
    },
    Experiment {
        id: "ours-speed",
        source: "ours",
        claim: "the simulator is orders of magnitude faster than other cycle-level simulators, with stalls and network",
        part: "the simulator with and without fast-forward",
        differs: "published rates were measured on other layers of the same kind, on another computer",
        run: Run::Here(ours_speed::run),
    },
];
